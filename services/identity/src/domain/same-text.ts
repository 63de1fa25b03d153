import { timingSafeEqual } from 'node:crypto'

/** Compares tokens and codes: in constant time where their lengths are equal. */
export function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
