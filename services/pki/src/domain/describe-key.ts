import type { KeyObject } from 'node:crypto'

/** Such as 'RSA 4096' and 'P-384'. */
export function describeKey({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
  const { modulusLength, namedCurve = '' } = asymmetricKeyDetails ?? {}
  if (asymmetricKeyType === 'rsa') return `RSA ${modulusLength}`
  if (asymmetricKeyType === 'ed25519') return 'Ed25519'
  return curveNames[namedCurve] ?? namedCurve
}

const curveNames: Readonly<Record<string, string>> = {
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
}

/** A name of a certificate, which node:crypto writes in several lines, in one. */
export const onOneLine = (name: string): string => name.replaceAll('\n', ', ')
