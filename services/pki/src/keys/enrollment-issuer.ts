import { randomUUID } from 'node:crypto'
import { boundedQueue } from '@overlay/process/async'
import type { EnrollmentWish } from '@overlay/rpc'
import { newId } from '@overlay/store/kind-store'
import { LRUCache } from 'lru-cache'
import type { Enrollment, EnrollmentMethod } from '../domain/enrollment.js'
import { caJwt, enrollmentJwt, type TokenSigner } from '../domain/sign-jwt.js'
import { JWTS_CACHED, JWTS_SIGNED_AT_ONCE, JWTS_WAITING } from '../limits.js'
import type { Keyring } from './keyring.js'

/** Creates enrollments, and signs their tokens when they are read. It stores nothing. */
export interface EnrollmentIssuer {
  issue(wish: EnrollmentWish): Enrollment
  /** The enrollment as it would have been issued then. Undefined: it would have expired. */
  issueAsOf(wish: EnrollmentWish, then: Date): Enrollment | undefined
  /** With tokens that the active server key signs, in their order. */
  signed<E extends Enrollment>(enrollments: readonly E[]): Promise<readonly (E & { readonly jwt: string })[]>
  /** The token for clients that have a certificate of the authority. */
  caJwt(caId: string): Promise<string>
}

export interface IssuerOptions {
  /** Advertised `host:port` of the APIs. */
  readonly address: string
  readonly identityMinutes: number
  readonly routerMinutes: number
  now(): Date
  keyring(): Promise<Keyring>
}

export function openEnrollmentIssuer(options: IssuerOptions): EnrollmentIssuer {
  const { address, identityMinutes, routerMinutes, now, keyring } = options
  const queue = boundedQueue({
    name: 'enrollment-tokens',
    running: JWTS_SIGNED_AT_ONCE,
    waiting: JWTS_WAITING,
  })
  const jwts = new LRUCache<string, Promise<string>>({ max: JWTS_CACHED })
  const signer = async (): Promise<TokenSigner> => {
    const { key, keyId } = (await keyring()).server
    return { address, key, keyId }
  }
  /** Concurrent readers share a signature. A failed one is not kept. */
  function jwtOf(signer: TokenSigner, enrollment: Enrollment): Promise<string> {
    const key = `${enrollment.token} ${enrollment.expiresAt.getTime()} ${signer.keyId}`
    const cached = jwts.get(key)
    if (cached) return cached
    const signed = queue(() => enrollmentJwt(signer, enrollment))
    jwts.set(key, signed)
    signed.catch(() => jwts.delete(key)) // the callers get the failure
    return signed
  }
  function issue(wish: EnrollmentWish, then = now()): Enrollment {
    const minutes = wish.identityId ? identityMinutes : routerMinutes
    return {
      id: wish.id || newId('base62'), // wire: longer than those that the system chooses
      token: wish.token || randomUUID(),
      method: wish.method as EnrollmentMethod,
      identityId: wish.identityId || null,
      edgeRouterId: wish.edgeRouterId || null,
      transitRouterId: wish.transitRouterId || null,
      caId: wish.caId || null,
      username: wish.username || null,
      expiresAt: new Date(wish.expiresAtMs || then.getTime() + minutes * 60_000),
    }
  }
  return {
    issue: (wish) => issue(wish),
    issueAsOf(wish, then) {
      const enrollment = issue(wish, then)
      return enrollment.expiresAt > now() ? enrollment : undefined
    },
    async signed(enrollments) {
      if (enrollments.length === 0) return []
      const active = await signer()
      return Promise.all(enrollments.map(async (one) => ({ ...one, jwt: await jwtOf(active, one) })))
    },
    caJwt: async (caId) => caJwt(await signer(), caId),
  }
}
