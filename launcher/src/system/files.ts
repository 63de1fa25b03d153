import { access } from 'node:fs/promises'

/** The reason of a failed operation on a file, or undefined for other errors. */
export function fileReason(err: unknown): string | undefined {
  const { code, syscall, message } = Object(err) as NodeJS.ErrnoException
  return syscall === undefined || code === 'ENOENT' ? undefined : message
}

/** Undefined in place of the error that a file does not exist. */
export function ignoreMissing(err: NodeJS.ErrnoException): undefined {
  if (err.code !== 'ENOENT') throw err
}

/** Whether the promise is fulfilled. */
export const succeeds = (attempt: Promise<unknown>): Promise<boolean> =>
  attempt.then(
    () => true,
    () => false,
  )

export const exists = (path: string): Promise<boolean> => succeeds(access(path))
