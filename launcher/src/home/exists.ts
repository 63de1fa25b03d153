import { access } from 'node:fs/promises'

/** True where the promise is fulfilled. */
export const succeeds = (attempt: Promise<unknown>): Promise<boolean> =>
  attempt.then(
    () => true,
    () => false,
  )

export const exists = (path: string): Promise<boolean> => succeeds(access(path))
