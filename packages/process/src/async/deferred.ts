export interface Deferred<T> {
  readonly promise: Promise<T>
  resolve(value: T): void
}

/** A promise that is resolved from outside. */
export function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T) => void = () => undefined
  const promise = new Promise<T>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
