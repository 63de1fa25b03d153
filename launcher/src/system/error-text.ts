/** The message of an error and of all its causes. */
export function errorText(err: unknown): string {
  if (!(err instanceof Error)) return String(err)
  const message = err.message || String((err as NodeJS.ErrnoException).code ?? err.name) // AggregateError has no message
  return err.cause ? `${message}: ${errorText(err.cause)}` : message
}

/** The same for the operator, with what to do where the message cannot say it. */
export function failureText(err: unknown): string {
  const full = diskFull(err)
  if (full === undefined) return errorText(err)
  return `no space left on a disk: free some below OVERLAY_HOME, below /var/lib/overlay, in the directory of a backup or at the database server (${full.trim()})`
}

const fullDisk = /^.*(No space left on device|Check free disk space|Disk quota exceeded).*$/m

/** The error of a full disk, in one line. It comes from files, from Postgres or from its programs. */
function diskFull(err: unknown): string | undefined {
  if (!(err instanceof Error)) return undefined
  const line = fullDisk.exec(err.message)?.[0]
  if (line !== undefined) return line
  const { code = '', message } = err as NodeJS.ErrnoException
  return ['ENOSPC', 'EDQUOT', '53100'].includes(code) ? message || code : diskFull(err.cause)
}
