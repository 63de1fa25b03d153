/** What ends when a session ends. A session has the key by which controllers name it: its token, or its id from 2.0 on. */
export interface Sessions {
  /** Ends what depends on these sessions. */
  removed(keys: readonly string[]): void
  isRemoved(key: string | undefined): boolean
  /** Calls back when the session ends. Returns what cancels this. */
  onRemoved(key: string | undefined, end: () => void): () => void
  /** Sessions in use. */
  keys(): string[]
}

export function openSessions(): Sessions {
  const removed = new Set<string>()
  const listeners = new Map<string, Set<() => void>>()
  return {
    removed(keys) {
      for (const key of keys) {
        removed.add(key)
        for (const end of [...(listeners.get(key) ?? [])]) end()
        listeners.delete(key)
      }
    },
    isRemoved: (key) => key !== undefined && removed.has(key),
    onRemoved(key, end) {
      if (key === undefined) return () => undefined
      const ofKey = listeners.get(key) ?? new Set()
      listeners.set(key, ofKey.add(end))
      return () => {
        ofKey.delete(end)
        if (ofKey.size === 0 && listeners.get(key) === ofKey) listeners.delete(key)
      }
    },
    keys: () => [...listeners.keys()],
  }
}
