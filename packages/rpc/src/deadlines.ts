/** Calls `expire` after `ms`, or never if that is infinite. Returns a function that cancels this. */
export function expireAfter(ms: number, expire: () => void): () => void {
  if (ms === Number.POSITIVE_INFINITY) return () => undefined
  const timer = setTimeout(expire, ms).unref() // the calls themselves keep the process alive
  return () => clearTimeout(timer)
}
