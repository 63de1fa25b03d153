type Part = Disposable | AsyncDisposable | (() => unknown)

/** Disposes parts one after the other, all of them even if one fails. Then fails with the first error. */
export async function disposeAll(...parts: readonly (Part | undefined)[]): Promise<void> {
  const errors: unknown[] = []
  for (const part of parts) {
    try {
      await dispose(part)
    } catch (err) {
      errors.push(err)
    }
  }
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} parts were not closed in order`)
  if (errors.length === 1) throw errors[0]
}

/** Registers a part that has been opened, and returns it. */
export type Own = <P extends Disposable | AsyncDisposable | undefined>(part: P) => P

/** Opens something of several parts. If that fails, the parts that `own` has registered are disposed, the last one first. */
export async function openAll<T>(open: (own: Own) => Promise<T>): Promise<T> {
  const parts: (Disposable | AsyncDisposable)[] = []
  try {
    return await open((part) => {
      if (part) parts.push(part)
      return part
    })
  } catch (err) {
    await disposeAll(...parts.reverse()).catch(() => undefined) // the first error is the reason
    throw err
  }
}

const dispose = (part: Part | undefined): unknown => {
  if (part === undefined) return undefined
  if (typeof part === 'function') return part()
  return Symbol.asyncDispose in part ? part[Symbol.asyncDispose]() : part[Symbol.dispose]()
}
