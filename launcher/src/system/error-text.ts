/** The message of an error and of all its causes. */
export function errorText(err: unknown): string {
  if (!(err instanceof Error)) return String(err)
  const message = err.message || String((err as NodeJS.ErrnoException).code ?? err.name) // AggregateError has no message
  return err.cause ? `${message}: ${errorText(err.cause)}` : message
}
