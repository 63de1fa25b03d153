import { randomUUID } from 'node:crypto'
import { newId } from '@overlay/platform/kind-store'
import type { EnrollmentWish } from '@overlay/rpc'
import type { Enrollment, Method } from '../domain/enrollment.js'
import { caJwt, enrollmentJwt, type Issuer } from '../domain/jwt.js'
import type { Keyring } from './keyring.js'

/** How enrollments are made out of wishes. */
export interface Grants {
  /** The enrollment that the wish becomes; nothing is stored. */
  made(wish: EnrollmentWish): Promise<Enrollment>
  /** Another token and another end for the same enrollment. */
  remade(known: Enrollment, expiresAt: Date): Promise<Enrollment>
  /** For those whom the authority has certified. */
  forCa(caId: string): Promise<string>
}

export interface GrantOptions {
  /** Advertised `host:port` of the APIs. */
  readonly address: string
  readonly identityMinutes: number
  readonly routerMinutes: number
  readonly now: () => Date
  keyring(): Promise<Keyring>
}

export function openGrants({ address, identityMinutes, routerMinutes, now, keyring }: GrantOptions): Grants {
  const issuer = async (): Promise<Issuer> => {
    const { key, keyId } = (await keyring()).server
    return { address, key, keyId }
  }
  const signed = async (made: Omit<Enrollment, 'jwt'>): Promise<Enrollment> => ({
    ...made,
    jwt: await enrollmentJwt(await issuer(), made),
  })
  return {
    made(wish) {
      const minutes = wish.identityId ? identityMinutes : routerMinutes
      return signed({
        id: wish.id || newId('base62'), // wire: longer than those that the system chooses
        token: wish.token || randomUUID(),
        method: wish.method as Method,
        identityId: wish.identityId || null,
        edgeRouterId: wish.edgeRouterId || null,
        transitRouterId: wish.transitRouterId || null,
        caId: wish.caId || null,
        username: wish.username || null,
        expiresAt: new Date(wish.expiresAtMs || now().getTime() + minutes * 60_000),
      })
    },
    remade: (known, expiresAt) => signed({ ...known, token: randomUUID(), expiresAt }),
    forCa: async (caId) => caJwt(await issuer(), caId),
  }
}
