import { randomUUID } from 'node:crypto'
import { newId } from '@overlay/platform/kind-store'
import type { EnrollmentWish } from '@overlay/rpc'
import type { Enrollment, EnrollmentMethod } from '../domain/enrollment.js'
import { caJwt, enrollmentJwt, type TokenSigner } from '../domain/jwt.js'
import type { Keyring } from './keyring.js'

/** Creates enrollments and signs their tokens. It stores nothing. */
export interface EnrollmentIssuer {
  issue(wish: EnrollmentWish): Promise<Enrollment>
  /** The same enrollment with another token and another end. */
  renew(enrollment: Enrollment, expiresAt: Date): Promise<Enrollment>
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
  const signer = async (): Promise<TokenSigner> => {
    const { key, keyId } = (await keyring()).server
    return { address, key, keyId }
  }
  const sign = async (enrollment: Omit<Enrollment, 'jwt'>): Promise<Enrollment> => ({
    ...enrollment,
    jwt: await enrollmentJwt(await signer(), enrollment),
  })
  return {
    issue(wish) {
      const minutes = wish.identityId ? identityMinutes : routerMinutes
      return sign({
        id: wish.id || newId('base62'), // wire: longer than those that the system chooses
        token: wish.token || randomUUID(),
        method: wish.method as EnrollmentMethod,
        identityId: wish.identityId || null,
        edgeRouterId: wish.edgeRouterId || null,
        transitRouterId: wish.transitRouterId || null,
        caId: wish.caId || null,
        username: wish.username || null,
        expiresAt: new Date(wish.expiresAtMs || now().getTime() + minutes * 60_000),
      })
    },
    renew: (enrollment, expiresAt) => sign({ ...enrollment, token: randomUUID(), expiresAt }),
    caJwt: async (caId) => caJwt(await signer(), caId),
  }
}
