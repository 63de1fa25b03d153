/** A query that cannot be read. Code and message are for the client. */
export class FilterError extends Error {
  override readonly name = 'FilterError'

  constructor(
    readonly code: 'INVALID_FILTER' | 'INVALID_SORT_IDENTIFIER' | 'INVALID_PAGINATION',
    message: string,
  ) {
    super(message)
  }
}
