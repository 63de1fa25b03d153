import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'

export type Certificates = readonly [X509Certificate, ...X509Certificate[]]

/**
 * The certificates in the text of a file.
 * @param path for the error, which says what to do
 */
export function certificatesIn(text: string, path: string): Certificates {
  const pems = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  try {
    const [first, ...others] = pems.map((pem) => new X509Certificate(pem))
    if (first) return [first, ...others]
  } catch {
    // the message of OpenSSL names neither file nor remedy
  }
  throw new Error(`${path} contains no valid certificate in PEM: write it again`)
}

/** Fails unless the private key in the text of a file is that of the certificate. */
export function refuseOtherKey(
  certificate: { readonly leaf: X509Certificate; readonly path: string },
  key: { readonly text: string; readonly path: string },
): void {
  if (certificate.leaf.checkPrivateKey(keyIn(key.text, key.path))) return
  throw new Error(
    `${key.path} does not fit the certificate in ${certificate.path}: write both from the same issue`,
  )
}

function keyIn(pem: string, path: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    throw new Error(`${path} is not a private key in PEM without a passphrase: write it again`)
  }
}

/** Kubernetes replaces all files of a mounted secret at once, by the link `..data`. */
export async function snapshotOf(directory: string): Promise<string> {
  try {
    return await realpath(join(directory, '..data'))
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return directory
    throw new Error(`cannot read ${directory}: ${(err as NodeJS.ErrnoException).code}`)
  }
}
