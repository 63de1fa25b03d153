import { randomBytes } from 'node:crypto'
import { lstat, readFile } from 'node:fs/promises'
import { services } from '@overlay/store/postgres/prepare-and-migrate'
import { fileReason, ignoreMissing } from '../system/files.js'

/** Secret values that stay the same across starts. */
export interface Secrets {
  readonly id: string // of this home
  readonly postgresPassword: string
  /** Each opens only the values of its service. */
  readonly keySecrets: Readonly<Record<'identity' | 'pki', string>>
  readonly rolePasswords: Readonly<Record<(typeof services)[number], string>>
}

const secret = (bytes: number): string => randomBytes(bytes).toString('base64url')

export const newSecrets = (): Secrets => ({
  id: secret(9),
  postgresPassword: secret(24),
  keySecrets: { identity: secret(32), pki: secret(32) },
  rolePasswords: newRolePasswords(),
})

/** For a restore: what opens the database is kept, what belongs to a machine is new. */
export const secretsForNewHome = ({ keySecrets, rolePasswords }: Secrets): Secrets => ({
  ...newSecrets(),
  keySecrets,
  rolePasswords,
})

const newRolePasswords = () =>
  Object.fromEntries(services.map((service) => [service, secret(24)])) as Record<
    (typeof services)[number],
    string
  >

/**
 * The text of the file and what it contains, or undefined if it does not exist. The error of an unusable file says what
 * to do.
 */
export async function readSecrets(
  file: string,
): Promise<{ readonly text: string; readonly secrets: Secrets } | undefined> {
  const status = await lstat(file).catch(ignoreMissing)
  if (status === undefined) return undefined
  if (!status.isFile()) throw new Error(`${file} is not a file: ${restore}`)
  const text = await readFile(file, 'utf8').catch((err: unknown) => {
    throw new Error(
      `cannot read ${file}: ${fileReason(err) ?? String(err)}; its owner must be the user who starts the product`,
    )
  })
  if (status.mode & 0o077)
    throw new Error(`${file} can be read or written by other users: run chmod 600 ${file}`)
  try {
    return { text, secrets: secretsIn(text) }
  } catch (err) {
    throw new Error(`${file} ${(err as Error).message}: ${restore}`)
  }
}

const restore = 'restore it from a backup, because keys and second factors cannot be read without it'

/**
 * A home of an earlier version may lack passwords of services that are new, and may have the key of an authority of
 * processes, which is dropped. Errors do not quote the text.
 */
export function secretsIn(text: string): Secrets {
  const { internalAuthorities: _former, ...stored } = parse(text)
  const { keySecrets, rolePasswords = {} } = stored
  if (!isStrings(rolePasswords)) throw new Error("has no valid member 'rolePasswords'")
  const keys = isStrings(keySecrets) ? keySecrets : {}
  return {
    ...stored, // of a newer version
    id: member(stored, 'id'),
    postgresPassword: member(stored, 'postgresPassword'),
    keySecrets: {
      identity: member(keys, 'identity', 'keySecrets.'),
      pki: member(keys, 'pki', 'keySecrets.'),
    },
    rolePasswords: { ...newRolePasswords(), ...rolePasswords },
  }
}

type Members = Readonly<Record<string, unknown>>

function parse(text: string): Members {
  if (text.trim() === '') throw new Error('is empty')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('is not JSON')
  }
  if (!isObject(value)) throw new Error('is not a JSON object')
  return value
}

function member(members: Members, name: string, path = ''): string {
  const value = members[name]
  if (!isSecret(value)) throw new Error(`has no valid member '${path}${name}'`)
  return value
}

const isSecret = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isStrings = (value: unknown): value is Readonly<Record<string, string>> =>
  isObject(value) && Object.values(value).every(isSecret)
