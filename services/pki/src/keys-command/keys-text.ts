import { columns } from '@overlay/process/columns'
import { isTokenRole } from '../domain/planned-key.js'
import type { KeyView } from '../keys/operations.js'
import { DAY_MS } from '../limits.js'

const SOON_DAYS = 30

/** Enough of an id to name a key. */
export const shortId = (id: string): string => id.slice(0, 8)

/** Such as: signing key 1a2b3c4d ('O=example, CN=signing'). */
export const nameOf = ({ id, role, subject }: KeyView): string =>
  `${role} key ${shortId(id)}${subject === undefined ? '' : ` ('${subject}')`}`

/** For people. Times are in UTC. */
export function keysTable(keys: readonly KeyView[], now: Date): readonly string[] {
  const head = [
    'role',
    'state',
    'id',
    'key',
    'subject',
    'valid until',
    'days left',
    'replaced',
    'depends on it',
  ]
  const rows = keys.map((key) => [
    key.role,
    key.state,
    shortId(key.id),
    key.isPublicOnly ? `${key.kind}, public` : key.kind,
    key.subject ?? '-',
    dayOf(key.notAfter) ?? '-',
    key.notAfter ? daysText(daysLeft(key.notAfter, now)) : '-',
    replacement(key),
    dependents(key),
  ])
  return columns([head, ...rows])
}

/**
 * A line for each key that needs the operator.
 * @param command the command line up to the arguments
 */
export const hintsOf = (keys: readonly KeyView[], now: Date, command: string): readonly string[] => {
  const hints = keys.flatMap((key) => hintOf(key, now, command) ?? [])
  return hints.length > 0 ? ['', ...hints] : []
}

function hintOf(key: KeyView, now: Date, command: string): string | undefined {
  const { role, state, notAfter, renewsAt, source, isPublicOnly } = key
  if (state === 'next' && (!isTokenRole(role) || source === 'provided'))
    // others of tokens are activated in time
    return `the next ${nameOf(key)} is not in use yet: ${command} activate ${isPublicOnly ? 'signing' : role}`
  if (state !== 'active') return undefined
  const days = notAfter && daysLeft(notAfter, now)
  if (days !== undefined && days < 0) return `the ${nameOf(key)} HAS EXPIRED: ${command} prepare ${role}`
  if (renewsAt && renewsAt.getTime() + DAY_MS < now.getTime())
    return `the ${nameOf(key)} should have been replaced on ${dayOf(renewsAt)}: the log of pki says why it was not`
  if (days !== undefined && days < SOON_DAYS && source === 'provided' && !isPublicOnly)
    return `the ${nameOf(key)} is yours and is not renewed: provide a newer certificate or another key`
  return undefined
}

const replacement = ({ state, renewsAt, source }: KeyView): string => {
  if (state !== 'active') return '-'
  return dayOf(renewsAt) ?? (source === 'provided' ? 'by you' : '-')
}

function dependents({ outstanding }: KeyView): string {
  if (!outstanding) return '-'
  const { count, what, until } = outstanding
  return `${count === undefined ? '' : `${count} `}${what} until ${dayOf(until)}`
}

const dayOf = (time: Date | undefined): string | undefined => time?.toISOString().slice(0, 10)

const daysLeft = (time: Date, now: Date): number => Math.floor((time.getTime() - now.getTime()) / DAY_MS)

const daysText = (days: number): string => (days < 0 ? 'EXPIRED' : String(days))
