/** In place of the granting policy: not determined yet. */
export const UNDETERMINED = '?'

/** A session, with all that its access depends on. */
export interface SessionAccess {
  readonly id: string
  readonly apiSessionId: string
  readonly identityId: string
  readonly serviceId: string
  readonly type: 'Dial' | 'Bind'
  /** One policy that grants it; empty: none, the identity is an admin. */
  readonly grantingPolicyId: string
  /** Routers evaluate the checks of its device. */
  readonly postureAtRouters: boolean
}

export type EndedSession = Omit<SessionAccess, 'grantingPolicyId' | 'postureAtRouters'>

/** What policy answers about sessions, in their order. */
export interface AccessAnswer {
  readonly lost: readonly boolean[]
  readonly granting: readonly string[]
}

/** Sessions that lost their access, and sessions that another policy grants now. */
export interface AccessChanges {
  readonly lost: readonly string[]
  readonly moved: readonly { readonly id: string; readonly granting: string }[]
}

export function accessChanges(sessions: readonly SessionAccess[], answer: AccessAnswer): AccessChanges {
  const isLost = (_: SessionAccess, i: number): boolean => answer.lost[i] === true
  const moved = sessions.flatMap(({ id, grantingPolicyId }, i) => {
    const granting = answer.granting[i] ?? UNDETERMINED
    return answer.lost[i] || granting === grantingPolicyId ? [] : [{ id, granting }]
  })
  return { lost: sessions.filter(isLost).map(({ id }) => id), moved }
}
