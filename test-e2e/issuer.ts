import { createPrivateKey, randomUUID, sign } from 'node:crypto'
import type { Admin } from './admin.js'
import { newAuthority } from './authority.js'

/** A third party whose tokens the network accepts. */
export interface Issuer {
  readonly signerId: string
  /** A token for the identity, with further claims. */
  token(identityId: string, claims?: object): string
}

/** Registers a third party that signs with one key, whose certificate the network has. */
export async function addIssuer(admin: Admin): Promise<Issuer> {
  const [kid, name] = [randomUUID(), `issuer-${randomUUID()}`]
  const [issuer, audience] = [`https://${name}.example`, 'network']
  const { key, cert: certPem } = await newAuthority(name)
  const body = { name, enabled: true, issuer, audience, certPem, kid }
  const signerId = await admin.create('external-jwt-signers', body)
  const privateKey = createPrivateKey(key)
  return {
    signerId,
    token(sub, claims = {}) {
      const now = Math.floor(Date.now() / 1000)
      const payload = { iss: issuer, aud: audience, sub, iat: now, exp: now + 3600, ...claims }
      const content = [{ alg: 'ES256', typ: 'JWT', kid }, payload]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.')
      const signature = sign('sha256', Buffer.from(content), { key: privateKey, dsaEncoding: 'ieee-p1363' })
      return `${content}.${signature.toString('base64url')}`
    },
  }
}
