import { LONGEST_TEXT } from '../limits.js'

/** Without control and formatting characters, and without tags of markup: pages, consoles and terminals show it. */
export const isShowable = (text: string): boolean => text.length <= LONGEST_TEXT && !/[\p{C}<>]/u.test(text)

/** An id, a protocol or an address: `tls:host:port`, `[::1]:80`, `hosted:token`. */
export const isIdentifier = (text: string): boolean =>
  /^[\x21\x23-\x26\x28-\x3b\x3d\x3f-\x5f\x61-\x7e]{1,500}$/.test(text)

/** What a router reports about itself or its circuits; empty if it cannot be shown. */
export const showable = (text: string): string => (isShowable(text) ? text : '')

/** A time that a router reports, in milliseconds since 1970, in ISO 8601. Undefined: there is no such time. */
export function reportedTime(ms: bigint): string | undefined {
  const at = new Date(Number(ms))
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString()
}

/** A copy whose texts can be shown. */
export const showableMembers = <T extends object>(members: T): T =>
  Object.fromEntries(
    Object.entries(members).map(([name, value]) => [
      name,
      typeof value === 'string' ? showable(value) : value,
    ]),
  ) as T
