import type { Precedence } from './terminator-precedence.js'

/** A terminator as its router describes it. */
export interface TerminatorClaim {
  readonly id: string
  readonly serviceId: string
  readonly routerId: string
  readonly binding: string
  readonly hostId: string
  readonly cost: number
  readonly precedence: Precedence
  /** The bind session; null: none. */
  readonly sessionId: string | null
}

export interface StoredTerminator extends TerminatorClaim {
  /** While the router is quiesced: the precedence to restore. */
  readonly savedPrecedence: Precedence | null
  /** An administrator has created it: its router may only take it out of use. */
  readonly isOfAdministrator: boolean
}

/** What a claim that repeats a stored terminator changes. */
export interface ClaimedChange {
  readonly id: string
  readonly cost: number
  readonly precedence: Precedence
  readonly savedPrecedence: Precedence | null
  readonly sessionId: string | null
}

/** The text for a claim of an id that another terminator has. Undefined: the claim is for the stored terminator. */
export function conflictOf(stored: StoredTerminator, claim: TerminatorClaim): string | undefined {
  const conflict = (what: string) => `selected id conflicts with terminator for different ${what}`
  if (stored.binding !== claim.binding) return conflict('binding')
  if (stored.serviceId !== claim.serviceId) return conflict('service')
  if (stored.routerId !== claim.routerId) return conflict('router')
  if (stored.hostId !== claim.hostId) return conflict('identity')
  return undefined
}

/**
 * What the claim changes. Undefined: nothing.
 * differs: a quiesced terminator keeps its precedence until it is restored.
 */
export function changeBy(stored: StoredTerminator, claim: TerminatorClaim): ClaimedChange | undefined {
  const isQuiesced = stored.savedPrecedence !== null
  const next = {
    id: stored.id,
    cost: claim.cost,
    precedence: isQuiesced ? stored.precedence : claim.precedence,
    savedPrecedence: isQuiesced ? claim.precedence : null,
    sessionId: claim.sessionId,
  }
  const isSame =
    next.cost === stored.cost &&
    next.precedence === stored.precedence &&
    next.savedPrecedence === stored.savedPrecedence &&
    next.sessionId === stored.sessionId
  return isSame ? undefined : next
}
