import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

const VERSION = 'v2'
const FORMER_VERSION = 'v1' // of keys from before 0.1.0

/** Encrypts under a secret. The name is authenticated: a sealed text cannot take the place of another. */
export function seal(secret: string, name: string, text: string): string {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', keyOf(secret), iv).setAAD(Buffer.from(name))
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return [VERSION, ...[iv, cipher.getAuthTag(), body].map((part) => part.toString('base64url'))].join('.')
}

export function unseal(secret: string, name: string, sealed: string): string {
  const [version, ...parts] = sealed.split('.')
  const [iv, tag, body] = parts.map((part) => Buffer.from(part, 'base64url'))
  if ((version !== VERSION && version !== FORMER_VERSION) || !iv || !tag || !body)
    throw new Error(`key ${name}: unknown form of encryption`)
  try {
    const decipher = createDecipheriv('aes-256-gcm', keyOf(secret), iv, { authTagLength: 16 })
      .setAAD(Buffer.from(name))
      .setAuthTag(tag)
    return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8')
  } catch {
    throw new Error(`key ${name}: the key secret is not the one that it was stored with`)
  }
}

const keyOf = (secret: string): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', secret, '', 'overlay private keys at rest', 32))
