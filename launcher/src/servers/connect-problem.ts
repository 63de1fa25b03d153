interface Failure {
  readonly code?: unknown
  readonly name?: string
  readonly message?: string
  readonly cause?: unknown
  readonly errors?: readonly unknown[] // one for each address of a host
}

/** What is wrong, and what to do. */
interface Problem {
  readonly reason: string
  /** Trying again later does not help. */
  readonly isWrongSetting: boolean
}

const wrongSetting = (reason: string): Problem => ({ reason, isWrongSetting: true })
const unavailable = (reason: string): Problem => ({ reason, isWrongSetting: false })

const untrusted = wrongSetting('its certificate is not trusted')

const network: Readonly<Record<string, Problem>> = {
  ECONNREFUSED: unavailable('connection refused: start the server, or correct host and port'),
  // also instead of the alert about a missing client certificate, if it is overtaken
  ECONNRESET: unavailable(
    'the server closed the connection: check that host and port are those of this server, and the client certificate if it requires one',
  ),
  ENOTFOUND: wrongSetting('unknown host: correct the host, or check the name service of this machine'),
  EAI_AGAIN: unavailable('the name service of this machine does not answer, so the host is unknown'),
  ETIMEDOUT: unavailable('no answer: check host, port and firewalls'),
  EHOSTUNREACH: unavailable('no route to the host: check host and network'),
  ENETUNREACH: unavailable('no route to the host: check host and network'),
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: wrongSetting(
    'its certificate is for another host: use the host name of the certificate',
  ),
  CERT_HAS_EXPIRED: wrongSetting('its certificate has expired: renew it there'),
  CERT_NOT_YET_VALID: wrongSetting('its certificate is not valid yet: check the clocks'),
}

/** The server refuses the certificate of this side. Versions of OpenSSL name alerts differently. */
const alerts: readonly (readonly [RegExp, string])[] = [
  [
    /^ERR_SSL_.*ALERT_CERTIFICATE_REQUIRED$/,
    'it requires a client certificate: put tls.crt and tls.key into',
  ],
  [/^ERR_SSL_.*ALERT_CERTIFICATE_EXPIRED$/, 'it refuses an expired client certificate: renew tls.crt in'],
  [
    /^ERR_SSL_.*ALERT_BAD_CERTIFICATE$/, // of nats-server, both without a certificate and with another one
    'it requires a client certificate that it trusts: name its authority at the server, or put other tls.crt and tls.key into',
  ],
  [
    /^ERR_SSL_.*ALERT_(UNKNOWN_CA|CERTIFICATE_UNKNOWN|CERTIFICATE_REVOKED)$/,
    'it does not trust the client certificate: name its authority at the server, or replace tls.crt and tls.key in',
  ],
]

const alertOf = (code: string): string | undefined => alerts.find(([pattern]) => pattern.test(code))?.[1]

const isKnown = (code: string): boolean => code in network || alertOf(code) !== undefined

/** What to do if a database cannot be used. Undefined: the error has another reason. No password is quoted. */
export function databaseProblem(err: unknown, url: string): Problem | undefined {
  const { hostname, port, pathname, username, searchParams } = new URL(url)
  const [user, database] = [username, pathname.slice(1) || username].map(decodeURIComponent)
  const server = searchParams.get('host') ?? `${hostname}:${port || 5432}`
  const refusal = failureIn(err, (code) => code.startsWith('28'))
  const refused = refusal && userIn(textOf(refusal))
  const isRole = refused !== undefined && refused !== user
  const problems: Readonly<Record<string, Problem>> = {
    '28P01': wrongSetting(
      isRole
        ? `wrong password for role ${refused}: set OVERLAY_HOME to the directory of the installation that uses this database`
        : `wrong password for user ${user}`,
    ),
    '28000': wrongSetting(
      `the server does not admit user ${refused ?? user} (${textOf(refusal)}): ${admission(textOf(refusal))}`,
    ),
    '3D000': wrongSetting(
      `there is no database ${database}: run create database ${database} owner ${user}, or correct the name`,
    ),
    '42501': wrongSetting(
      `user ${user} lacks rights (${textOf(err)}): the user must own database ${database}`,
    ),
    '53100': wrongSetting('the disk of the database server is full'),
    '53300': unavailable('the server has too many connections: raise its max_connections'),
    '57P03': unavailable('the server is starting or stopping: try again'),
  }
  const code = codeIn(err, (code) => code in problems || isKnown(code))
  const alert = alertOf(code)
  const problem =
    problems[code] ??
    (network[code] === untrusted
      ? wrongSetting(`${untrusted.reason}: put its authority into ca.crt in ${databaseTls}`)
      : undefined) ??
    (alert ? wrongSetting(`${alert} ${databaseTls}`) : undefined) ??
    network[code] ??
    byMessage.find(([pattern]) => pattern.test(textOf(err)))?.[1]
  return (
    problem && {
      ...problem,
      reason: `cannot use the database ${database} at ${server} as user ${isRole ? refused : user}: ${problem.reason} (DATABASE_URL)`,
    }
  )
}

const databaseTls = 'OVERLAY_DATABASE_TLS, or add sslrootcert, sslcert and sslkey to the URL'

/** What to do about a user that pg_hba.conf does not admit as it connected. */
const admission = (text: string): string =>
  /no encryption/.test(text)
    ? 'if the server requires TLS, set OVERLAY_DATABASE_TLS, or add sslmode=verify-full to the URL; otherwise allow the user in pg_hba.conf'
    : /valid client certificate/.test(text)
      ? `it requires a client certificate: put tls.crt and tls.key into ${databaseTls}`
      : /certificate authentication failed/.test(text)
        ? 'the common name of tls.crt must be the user, or be mapped to it in pg_ident.conf'
        : 'correct the user, or allow it in pg_hba.conf'

const byMessage: readonly (readonly [RegExp, Problem])[] = [
  [/connect ENOENT/, unavailable('there is no socket: start the server, or correct the directory')],
  [
    /connect EACCES/,
    wrongSetting('permission denied for its socket: allow the user of the launcher to enter the directory'),
  ],
  [
    /timeout expired|timeout exceeded when trying to connect/,
    unavailable('no answer within 5 s: check host, port and firewalls'),
  ],
  [
    /does not support SSL/,
    wrongSetting(
      'the server has no TLS: set ssl = on there, or sslmode=disable in the URL, which protects nothing',
    ),
  ],
  [
    /password must be a (non-empty )?string/,
    wrongSetting('the server requires a password, and the URL has none'),
  ],
  [
    /Connection terminated/,
    unavailable('the server closed the connection: check that host and port are those of this server'),
  ],
]

/** What to do if a bus cannot be reached. */
export function busProblem(err: unknown, urls: string): Problem {
  const servers = urls.split(',').map((url) => new URL(url.trim()).host)
  const code = codeIn(err, isKnown)
  const alert = alertOf(code)
  const text = textOf(err)
  const { reason, isWrongSetting } =
    network[code] ??
    (alert ? wrongSetting(`${alert} OVERLAY_NATS_TLS`) : undefined) ??
    (/authoriz|authentic/i.test(`${(err as Failure).name} ${text}`)
      ? wrongSetting('it refuses user and password')
      : /timeout/i.test(text)
        ? unavailable('no answer within 2 s: check host, port and firewalls')
        : /tls|certificate/i.test(text)
          ? wrongSetting(
              `TLS fails (${text}): the scheme is tls:// if the server requires TLS, otherwise nats://`,
            )
          : unavailable(text))
  const advice =
    reason === untrusted.reason
      ? ': put its authority into ca.crt in the directory OVERLAY_NATS_TLS, or name it in NODE_EXTRA_CA_CERTS=FILE'
      : ''
  return {
    reason: `cannot reach the bus at ${servers.join(', ')}: ${reason}${advice} (NATS_URL)`,
    isWrongSetting,
  }
}

/** The code of the error, of its causes, or of one of its errors that `isKnown`. */
export const codeIn = (err: unknown, isKnown: (code: string) => boolean): string =>
  String(failureIn(err, isKnown)?.code ?? '')

/** The error, one of its causes, or one of its errors, whose code `isKnown`. */
function failureIn(err: unknown, isKnown: (code: string) => boolean): Failure | undefined {
  if (typeof err !== 'object' || err === null) return undefined
  const { code, cause, errors = [] } = err as Failure
  if (isKnown(String(code))) return err
  return [cause, ...errors].map((inner) => failureIn(inner, isKnown)).find(Boolean)
}

/** The user that the server refuses: that of the URL, or the role of a service. */
const userIn = (text: string): string | undefined => /\b(?:user|role) "([^"]+)"/.exec(text)?.[1]

const textOf = (err: unknown): string => {
  const { message, code } = Object(err) as Failure
  return message || String(code)
}
