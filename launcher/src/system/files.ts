import { access } from 'node:fs/promises'

/** Words for the errors of the file system that an operator can repair. */
const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space left on the disk',
  EDQUOT: 'the disk quota is exceeded',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files',
  ENOTDIR: 'a part of the path is not a directory',
  EISDIR: 'it is a directory',
  ELOOP: 'too many symbolic links',
  ENAMETOOLONG: 'the path is too long',
  EIO: 'the disk reports errors',
}

/** The reason of a failed operation on a file, or undefined for other errors. */
export const fileReason = (err: unknown): string | undefined =>
  reasons[String((err as { readonly code?: unknown } | undefined)?.code)]

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
