/** The message of an error and of all its causes. */
export function errorText(err: unknown): string {
  if (!(err instanceof Error)) return String(err)
  return err.cause ? `${err.message}: ${errorText(err.cause)}` : err.message
}
