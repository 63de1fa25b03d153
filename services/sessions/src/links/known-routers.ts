/** What links depend on in the row of a router. */
export interface KnownRouter {
  readonly cost: number
  readonly noTraversal: boolean
  readonly disabled: boolean
  /** SHA-1 of its client certificate, hex. Undefined until it enrolls. */
  readonly fingerprint: string | undefined
  readonly formerFingerprints: readonly string[]
  readonly unverifiedFingerprint: string | undefined
}

/** All routers, in memory. */
export interface KnownRouters {
  get(id: string): KnownRouter | undefined
  /** Undefined: the router is deleted. */
  onChange(listener: (id: string, router: KnownRouter | undefined) => void): Disposable
}
