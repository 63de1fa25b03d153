/** What ends when a session ends. */
export interface Sessions {
  /** Ends what depends on these sessions. */
  removed(tokens: readonly string[]): void
  isRemoved(token: string): boolean
  /** Calls back when the session ends. Returns what cancels this. */
  onRemoved(token: string, end: () => void): () => void
  /** Sessions in use. */
  tokens(): string[]
}

export function openSessions(): Sessions {
  const removed = new Set<string>()
  const listeners = new Map<string, Set<() => void>>()
  return {
    removed(tokens) {
      for (const token of tokens) {
        removed.add(token)
        for (const end of [...(listeners.get(token) ?? [])]) end()
        listeners.delete(token)
      }
    },
    isRemoved: (token) => removed.has(token),
    onRemoved(token, end) {
      const ofToken = listeners.get(token) ?? new Set()
      listeners.set(token, ofToken.add(end))
      return () => {
        ofToken.delete(end)
        if (ofToken.size === 0 && listeners.get(token) === ofToken) listeners.delete(token)
      }
    },
    tokens: () => [...listeners.keys()],
  }
}
