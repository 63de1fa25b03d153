import { BlockList, isIP } from 'node:net'

/** One variable of the environment: its name, what it means, how its text becomes a value. */
export interface Setting<T> {
  readonly env: string
  readonly about: string
  readonly secret: boolean
  readonly otherwise: string | undefined // for the table; undefined: it must be set
  /** `undefined`: it is not set. Throws an Error that says what is wrong, without the value. */
  parse(text: string | undefined): T
  /** The same setting, but it may be absent. */
  optional(): Setting<T | undefined>
}

export type Settings = Readonly<Record<string, Setting<unknown>>>
export type Values<S extends Settings> = {
  readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never
}

/** The message lists all problems and contains no secrets. */
export class WrongSettings extends Error {
  override readonly name = 'WrongSettings'
}

/**
 * Reads all settings.
 * @throws {WrongSettings}
 * @param others further problems of the environment, to be reported together
 */
export function readSettings<S extends Settings>(
  settings: S,
  env: NodeJS.ProcessEnv,
  others: readonly string[] = [],
): Values<S> {
  const problems = [...others]
  const values: Record<string, unknown> = {}
  for (const [key, { env: name, secret, parse }] of Object.entries(settings)) {
    const text = env[name] || undefined // set to nothing: not set
    try {
      values[key] = parse(text)
    } catch (err) {
      const shown = secret || text === undefined ? '' : `, not '${text}'`
      problems.push(`${name} ${(err as Error).message}${shown}`)
    }
  }
  if (problems.length > 0) throw new WrongSettings(`settings: ${problems.join('; ')}`)
  return Object.freeze(values) as Values<S>
}

/** The table of the documentation. A variable that several programs read is one row. */
export function settingsTable(programs: Readonly<Record<string, Settings>>): string {
  const rows = new Map<string, { about: string; otherwise: string | undefined; readBy: string[] }>()
  for (const [program, settings] of Object.entries(programs))
    for (const { env, about, otherwise } of Object.values(settings)) {
      const row = rows.get(env)
      const mayBeAbsent = row && row.otherwise === undefined && otherwise !== undefined
      if (row) row.readBy.push(mayBeAbsent ? `${program} (optional)` : program)
      else rows.set(env, { about, otherwise, readBy: [program] })
    }
  const lines = [...rows]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([env, { about, otherwise, readBy }]) => {
      const value = otherwise === undefined ? '(must be set)' : otherwise === '' ? '' : `\`${otherwise}\``
      return `| \`${env}\` | ${value} | ${about} | ${readBy.join(', ')} |`
    })
  return ['| Variable | Default | Meaning | Read by |', '|---|---|---|---|', ...lines, ''].join('\n')
}

interface Options {
  readonly default?: string | number | boolean
}

export const setting = {
  /** Of any type. `convert` throws an Error that says what is wrong, without the value. */
  parsed: declare,

  text: (env: string, about: string, options?: Options) => declare(env, about, (text) => text, options),

  /** Never shown, also not when it is refused. */
  secret: (env: string, about: string, { min = 1 } = {}) =>
    declare(env, about, (text) => requireLength(text, min), { isSecret: true }),

  number: (
    env: string,
    about: string,
    {
      min = 0,
      max = Number.MAX_SAFE_INTEGER,
      orZero = false,
      ...options
    }: Options & { min?: number; max?: number; orZero?: boolean } = {},
  ) => {
    const convert = (text: string): number => {
      const value = Number(text)
      if (orZero && value === 0) return value
      if (!Number.isInteger(value) || value < min || value > max)
        throw new Error(`must be ${orZero ? '0 or ' : ''}a whole number from ${min} to ${max}`)
      return value
    }
    return declare(env, about, convert, options)
  },

  /** False by default. */
  flag: (env: string, about: string) =>
    declare(env, about, (text) => oneOf(text, ['true', 'false'], 'true or false') === 'true', {
      default: false,
    }),

  oneOf: <const V extends string>(
    env: string,
    about: string,
    values: readonly V[],
    options?: { readonly default: NoInfer<V> },
  ): Setting<V> => declare(env, about, (text) => oneOf(text, values), options),

  /** `host:port`; an IPv6 host stands in brackets. */
  address: checked((text) => splitAddress(text)),

  /** Of a service: `host:port`, or `unix:/path` on one machine. */
  endpoint: checked(checkEndpoint),

  /** One or more endpoints, or `dns:host:port` for all addresses of a name, separated by commas. */
  endpoints: checked((text) => {
    for (const entry of text.split(',')) {
      const endpoint = entry.trim()
      if (endpoint.startsWith('dns:')) splitAddress(endpoint.slice('dns:'.length), 'dns:host:port')
      else checkEndpoint(endpoint)
    }
  }),

  /** IP addresses and networks (`10.0.0.0/8`), separated by commas. */
  networks: (env: string, about: string) => declare(env, about, networksIn),

  /**
   * May hold a password, so it is treated as a secret.
   * @param isList several URLs may be separated by commas
   */
  url: (env: string, about: string, schemes: readonly string[], { isList = false } = {}) =>
    declare(env, about, (text) => checkUrl(text, schemes, isList), { isSecret: true }),
}

function declare<T>(
  env: string,
  about: string,
  convert: (text: string) => T,
  { default: value, isSecret = false }: Options & { readonly isSecret?: boolean } = {},
): Setting<T> {
  const otherwise = value === undefined ? undefined : String(value)
  const own = { env, about, secret: isSecret }
  const optional = (): Setting<T | undefined> => ({
    ...own,
    otherwise: '',
    parse: (text) => (text === undefined ? undefined : convert(text)),
    optional,
  })
  const parse = (text = otherwise): T => {
    if (text === undefined) throw new Error('is not set')
    return convert(text)
  }
  return { ...own, otherwise, parse, optional }
}

function checked(check: (text: string) => unknown) {
  return (env: string, about: string, options?: Options): Setting<string> =>
    declare(
      env,
      about,
      (text) => {
        check(text)
        return text
      },
      options,
    )
}

function requireLength(text: string, min: number): string {
  if (text.length < min) throw new Error(`must have at least ${min} characters`)
  return text
}

function oneOf<V extends string>(
  text: string,
  values: readonly V[],
  named = `one of ${values.join(', ')}`,
): V {
  const value = values.find((v) => v === text)
  if (value === undefined) throw new Error(`must be ${named}`)
  return value
}

function checkUrl(text: string, schemes: readonly string[], isList: boolean): string {
  for (const url of isList ? text.split(',') : [text]) {
    if (!schemes.some((scheme) => url.trim().startsWith(`${scheme}://`)))
      throw new Error(`must be a URL that begins with ${schemes.map((s) => `${s}://`).join(' or ')}`)
    if (!isList && severalHosts.test(url))
      throw new Error('names several hosts: name one address, which leads to the server that takes writes')
    if (!URL.canParse(url.trim()))
      throw new Error(
        "is not a valid URL: it is scheme://user:password@host:port/name, and special characters of the password are percent-encoded ('@' is %40, '/' is %2F)",
      )
  }
  return text
}

function networksIn(text: string): BlockList {
  const list = new BlockList()
  for (const network of text.split(',')) addNetwork(list, network.trim())
  return list
}

function addNetwork(list: BlockList, text: string): void {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const version = isIP(address)
  const most = version === 6 ? 128 : 32
  const prefix = bits === undefined ? most : Number(bits)
  if (version === 0 || prefix > most) throw new Error('must be IP addresses and networks such as 10.0.0.0/8')
  list.addSubnet(address, prefix, version === 6 ? 'ipv6' : 'ipv4')
}

function checkEndpoint(text: string): void {
  if (!text.startsWith('unix:')) splitAddress(text, 'host:port or unix:/path')
  else if (!/^unix:\/[^,]+$/.test(text)) throw new Error('must be unix:/path, without a comma')
}

export function splitAddress(
  address: string,
  form = 'host:port',
): { readonly host: string; readonly port: number } {
  const [, v6, name, digits] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s/]+)):(\d{1,5})$/i.exec(address) ?? []
  const host = v6 ?? name
  const port = Number(digits)
  if (host === undefined || !(port <= 65_535)) throw new Error(`must be ${form}`)
  return { host, port }
}

/** A comma after the user and the password. */
const severalHosts = /^[^/]*\/\/(?:[^/?#]*@)?[^/?#@]*,[^/?#@]*(?:[/?#]|$)/
