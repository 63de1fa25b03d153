import { UNDETERMINED } from './session-access.js'

/** Which sessions a change concerns. */
export type ScopeKind = 'everything' | 'identity' | 'api-session' | 'service' | 'policy' | 'posture-check'

export interface Scope {
  readonly kind: ScopeKind
  readonly id: string
}

/** A change that can revoke access. */
export interface Revocation extends Scope {
  /** Number of the change in its schema. */
  readonly number: number
  /** Sessions of the scope have to be checked. */
  readonly isPending: boolean
}

/** A changed row of another service. */
export interface ChangedRow {
  readonly kind: string
  readonly id: string
  readonly number: number
  readonly isDeleted: boolean
}

/** For a service whose changes were missed. */
export const everything = (number: number): Revocation => ({
  kind: 'everything',
  id: '',
  number,
  isPending: true,
})

/** `hasMore`: of the sessions of deleted rows, not all have ended yet. */
export const identityRevocation = (
  { kind, id, number, isDeleted }: ChangedRow,
  hasMore: boolean,
): Revocation => ({
  kind: kind === 'identities' ? 'identity' : 'api-session',
  id,
  number,
  isPending: hasMore || !isDeleted,
})

const scopeKinds: Readonly<Record<string, ScopeKind>> = {
  services: 'service',
  'service-policies': 'policy',
  'posture-checks': 'posture-check',
  'posture-data': 'identity',
}

/** Kinds of policy whose changes can revoke access. */
export const policyKinds: readonly string[] = Object.keys(scopeKinds)

/** For a row whose content is not available. */
export const unknownPolicyRevocations = ({ kind, id, number }: ChangedRow): Revocation[] => {
  const scope = scopeKinds[kind]
  return scope ? [{ kind: scope, id, number, isPending: true }] : []
}

/** The deletion of a posture check revokes nothing. */
export function policyRevocations(row: ChangedRow, hasMore: boolean): Revocation[] {
  const { id, number, isDeleted } = row
  const kind = scopeKinds[row.kind]
  switch (kind) {
    case undefined:
      return []
    case 'service':
      return [{ kind, id, number, isPending: hasMore || !isDeleted }]
    case 'posture-check':
      if (isDeleted) return []
      return [
        { kind, id, number, isPending: true },
        // a create does not know which policies require the check
        { ...everything(number), isPending: false },
      ]
    case 'policy':
      return [
        { kind, id, number, isPending: true },
        { kind, id: UNDETERMINED, number, isPending: true },
      ]
    default:
      return [{ kind, id, number, isPending: true }]
  }
}
