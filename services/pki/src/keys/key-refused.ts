/** An operation on keys that does not fit their state. The message is for the operator. */
export class KeyRefused extends Error {
  override readonly name = 'KeyRefused'

  constructor(
    readonly reason: 'unknown' | 'none' | 'exists' | 'active' | 'not-published' | 'outstanding',
    message: string,
  ) {
    super(message)
  }
}
