import { timingSafeEqual } from 'node:crypto'

/** In constant time for texts of one length: for tokens and codes. */
export function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
