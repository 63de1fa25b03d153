/** What went wrong, for people, with all that led to it. */
export function reasonOf(err: unknown): string {
  if (!(err instanceof Error)) return String(err)
  return err.cause ? `${err.message}: ${reasonOf(err.cause)}` : err.message
}
