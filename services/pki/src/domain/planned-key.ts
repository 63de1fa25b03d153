/** Of keys that sign tokens: those of OpenID Connect, and those of sessions for services. They have no certificate. */
export const tokenRoles = ['token', 'session'] as const
export type TokenRole = (typeof tokenRoles)[number]

export const keyRoles = ['root', 'signing', 'server', ...tokenRoles] as const
export type KeyRole = (typeof keyRoles)[number]

export const isTokenRole = (role: KeyRole): role is TokenRole =>
  (tokenRoles as readonly KeyRole[]).includes(role)

export type KeyState = 'next' | 'active' | 'retired'

/** A key of the network, without the key itself and its certificate. */
export interface KeyFacts {
  readonly id: string
  readonly role: KeyRole
  readonly state: KeyState
  /** Provided keys are never replaced automatically. */
  readonly source: 'generated' | 'provided'
  readonly createdAt: Date
  readonly activeAt: Date | null
  readonly retiredAt: Date | null
}

export interface PlannedKey extends KeyFacts {
  /** Absent: keys of token roles have none. */
  readonly certificate?: PlannedCertificate
}

export interface PlannedCertificate {
  readonly notBefore: Date
  readonly notAfter: Date
  /** The authority that it leads to. Undefined: it is a root, or that authority was removed. */
  readonly issuerId: string | undefined
  /** Of a root: the other root that has certified it, too. */
  readonly crossedBy: string | undefined
  readonly hosts: readonly string[]
  /** False: the private key is elsewhere. */
  readonly canSign: boolean
}

export type Step =
  | { readonly step: 'add'; readonly role: KeyRole; readonly state: 'next' | 'active' }
  /** Retires the active key of the role. */
  | { readonly step: 'activate'; readonly id: string }
  /** Another certificate over the same key. */
  | { readonly step: 'renew'; readonly id: string }
  | { readonly step: 'remove'; readonly id: string }

export const keyOf = <Key extends Pick<PlannedKey, 'role' | 'state'>>(
  keys: readonly Key[],
  role: KeyRole,
  state: 'next' | 'active',
): Key | undefined => keys.find((key) => key.role === role && key.state === state)

export const isPublished = ({ createdAt }: Pick<PlannedKey, 'createdAt'>, ms: number, now: Date): boolean =>
  createdAt.getTime() + ms <= now.getTime()
