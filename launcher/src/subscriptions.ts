/** Who wants which subjects. `*` stands for one token, a final `>` for one or more. */
export interface Subscription {
  readonly subject: string
  readonly queue?: string
}

export interface Subscriptions<S extends Subscription> {
  add(subscription: S): void
  remove(subscription: S): void
  size(): number
  /** Everyone whom a message reaches: all without a queue, one of each queue. */
  reached(subject: string): S[]
}

export function subscriptions<S extends Subscription>(): Subscriptions<S> {
  const bySubject = new Map<string, Set<S>>() // by the subject as it was asked for, wildcards too
  let size = 0
  const patterns = new Map<string, readonly string[]>() // of those with wildcards, their tokens

  return {
    add(subscription) {
      const { subject } = subscription
      const wanting = bySubject.get(subject) ?? new Set()
      if (!wanting.has(subscription)) size++
      bySubject.set(subject, wanting.add(subscription))
      const tokens = subject.split('.')
      if (tokens.some(isWildcard)) patterns.set(subject, tokens)
    },
    remove(subscription) {
      const { subject } = subscription
      const wanting = bySubject.get(subject)
      if (wanting?.delete(subscription)) size--
      if (wanting?.size !== 0) return
      bySubject.delete(subject)
      patterns.delete(subject)
    },
    size: () => size,
    reached(subject) {
      const tokens = subject.split('.')
      const wanting = [...patterns].filter(([, pattern]) => matches(pattern, tokens)).map(([asked]) => asked)
      if (!patterns.has(subject)) wanting.push(subject)
      return wanting.flatMap((asked) => chosen(bySubject.get(asked) ?? new Set()))
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

function chosen<S extends Subscription>(wanting: ReadonlySet<S>): S[] {
  const all: S[] = []
  const queues = new Map<string, S[]>()
  for (const subscription of wanting) {
    const { queue } = subscription
    if (queue === undefined) all.push(subscription)
    else queues.set(queue, [...(queues.get(queue) ?? []), subscription])
  }
  for (const members of queues.values()) {
    const one = members[Math.floor(Math.random() * members.length)]
    if (one) all.push(one)
  }
  return all
}
