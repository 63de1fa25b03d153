/** A subscribed subject. `*` stands for one token, a final `>` for one or more. */
export interface Subscription {
  readonly subject: string
}

export interface Subscriptions<S extends Subscription> {
  add(subscription: S): void
  remove(subscription: S): void
  size(): number
  /** The subscriptions that match the subject of a message. */
  matching(subject: string): S[]
}

export function subscriptions<S extends Subscription>(): Subscriptions<S> {
  const bySubject = new Map<string, Set<S>>() // by the subscribed subject, with its wildcards
  const patterns = new Map<string, readonly string[]>() // tokens of the subjects with wildcards
  let size = 0

  return {
    add(subscription) {
      const { subject } = subscription
      const subscribers = bySubject.get(subject) ?? new Set()
      if (!subscribers.has(subscription)) size++
      bySubject.set(subject, subscribers.add(subscription))
      const tokens = subject.split('.')
      if (tokens.some(isWildcard)) patterns.set(subject, tokens)
    },
    remove(subscription) {
      const { subject } = subscription
      const subscribers = bySubject.get(subject)
      if (subscribers?.delete(subscription)) size--
      if (subscribers?.size !== 0) return
      bySubject.delete(subject)
      patterns.delete(subject)
    },
    size: () => size,
    matching(subject) {
      const tokens = subject.split('.')
      const subjects = [...patterns].filter(([, pattern]) => matches(pattern, tokens)).map(([key]) => key)
      if (!patterns.has(subject)) subjects.push(subject)
      return subjects.flatMap((key) => [...(bySubject.get(key) ?? [])])
    },
  }
}

export function isValidSubject(subject: string): boolean {
  const tokens = subject.split('.')
  return tokens.every((token, at) => token !== '' && (token !== '>' || at === tokens.length - 1))
}

const isWildcard = (token: string): boolean => token === '*' || token === '>'

function matches(pattern: readonly string[], tokens: readonly string[]): boolean {
  const open = pattern.at(-1) === '>'
  if (open ? tokens.length < pattern.length : tokens.length !== pattern.length) return false
  return pattern.every((token, at) => isWildcard(token) || token === tokens[at])
}
