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

/** A failure whose code and message match, what to do, and whether a setting is wrong. */
type Cause = readonly [pattern: RegExp, reason: string, isWrongSetting: boolean]

/** @param tls where the certificates of this side are */
const causesOf = (tls: string): readonly Cause[] => [
  [/^ECONNREFUSED/, 'connection refused: start the server, or correct host and port', false],
  [
    /^ECONNRESET|Connection terminated/, // also instead of the alert about a missing client certificate, if it is overtaken
    'the server closed the connection: check that host and port are those of this server, and the client certificate if it requires one',
    false,
  ],
  [/^ENOTFOUND/, 'unknown host: correct the host, or check the name service of this machine', true],
  [/^EAI_AGAIN/, 'the name service of this machine does not answer, so the host is unknown', false],
  [
    /^E?TIMED?OUT|^\S* timeout$|timeout expired|timeout exceeded when trying to connect/,
    'no answer: check host, port and firewalls',
    false,
  ],
  [/^E(HOST|NET)UNREACH/, 'no route to the host: check host and network', false],
  [
    /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(VERIFY_LEAF|GET_ISSUER))/,
    `its certificate is not trusted: put its authority into ca.crt in ${tls}`,
    true,
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID/,
    'its certificate is for another host: use the host name of the certificate',
    true,
  ],
  [/^CERT_HAS_EXPIRED/, 'its certificate has expired: renew it there', true],
  [/^CERT_NOT_YET_VALID/, 'its certificate is not valid yet: check the clocks', true],
  [
    /^ERR_SSL_.*ALERT_(\w*CERTIFICATE|UNKNOWN_CA)/,
    `it requires a client certificate that it trusts: put tls.crt and tls.key into ${tls}`,
    true,
  ],
]

/** What to do if a database cannot be used. Undefined: the error has another reason. No password is quoted. */
export function databaseProblem(err: unknown, url: string): Problem | undefined {
  const { hostname, port, pathname, username, searchParams } = new URL(url)
  const [user, database] = [username, pathname.slice(1) || username].map(decodeURIComponent)
  const server = searchParams.get('host') ?? `${hostname}:${port || 5432}`
  // the server refuses the user of the URL, or the role of a service
  const refusal = textsIn(err).find((text) => text.startsWith('28')) ?? ''
  const refused = /\b(?:user|role) "([^"]+)"/.exec(refusal)?.[1] ?? user
  const isRole = refused !== user
  const text = withoutCode(refusal)
  const tls = 'OVERLAY_DATABASE_TLS, or add sslrootcert, sslcert and sslkey to the URL'
  const denied = `the server does not admit user ${refused} (${text})`
  const problem = problemIn(err, [
    [
      /^28P01/,
      isRole
        ? `wrong password for role ${refused}: set OVERLAY_HOME to the directory of the installation that uses this database`
        : `wrong password for user ${user}`,
      true,
    ],
    [
      /^28000.*no encryption/,
      `${denied}: if the server requires TLS, set OVERLAY_DATABASE_TLS, or add sslmode=verify-full to the URL; otherwise allow the user in pg_hba.conf`,
      true,
    ],
    [/^28000.*valid client certificate/, `${denied}: put tls.crt and tls.key into ${tls}`, true],
    [/^28000/, `${denied}: correct the user or its certificate, or allow it in pg_hba.conf`, true],
    [
      /^3D000/,
      `there is no database ${database}: run create database ${database} owner ${user}, or correct the name`,
      true,
    ],
    [
      /^42501/,
      `user ${user} lacks rights (${withoutCode(textsIn(err)[0] ?? '')}): the user must own database ${database}`,
      true,
    ],
    [/^53100/, 'the disk of the database server is full', true],
    [/^53300/, 'the server has too many connections: raise its max_connections', false],
    [/^57P03/, 'the server is starting or stopping: try again', false],
    ...causesOf(tls),
    [/connect ENOENT/, 'there is no socket: start the server, or correct the directory', false],
    [/connect EACCES/, 'allow the user of the launcher to enter the directory of its socket', true],
    [
      /does not support SSL/,
      'the server has no TLS: set ssl = on there, or sslmode=disable in the URL, which protects nothing',
      true,
    ],
    [/password must be a (non-empty )?string/, 'the server requires a password, and the URL has none', true],
  ])
  return (
    problem && {
      ...problem,
      reason: `cannot use the database ${database} at ${server} as user ${refused}: ${problem.reason} (DATABASE_URL)`,
    }
  )
}

/** What to do if a bus cannot be reached. */
export function busProblem(err: unknown, urls: string): Problem {
  const servers = urls.split(',').map((url) => new URL(url.trim()).host)
  const { name, message = '' } = err as Failure
  const { reason, isWrongSetting } = problemIn(err, [
    ...causesOf('the directory OVERLAY_NATS_TLS'),
    [/authoriz|authentic/i, 'it refuses user and password', true],
    [
      /tls|certificate/i,
      `TLS fails (${message}): the scheme is tls:// if the server requires TLS, otherwise nats://`,
      true,
    ],
  ]) ?? { reason: message || `${name}`, isWrongSetting: false }
  return {
    reason: `cannot reach the bus at ${servers.join(', ')}: ${reason} (NATS_URL)`,
    isWrongSetting,
  }
}

/** The first cause of the error, of its causes, or of one of its errors. */
function problemIn(err: unknown, causes: readonly Cause[]): Problem | undefined {
  const texts = textsIn(err)
  const [cause] = causes.filter(([pattern]) => texts.some((text) => pattern.test(text)))
  return cause && { reason: cause[1], isWrongSetting: cause[2] }
}

/** Code, or name, and message of the error, of its causes and of its errors. */
function textsIn(err: unknown): readonly string[] {
  if (typeof err !== 'object' || err === null) return []
  const { code, name, message = '', cause, errors = [] } = err as Failure
  return [`${code || name} ${message}`, ...[cause, ...errors].flatMap(textsIn)]
}

const withoutCode = (text: string): string => text.slice(text.indexOf(' ') + 1)
