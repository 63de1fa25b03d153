import { X509Certificate } from 'node:crypto'

/** Leaf first. What cannot be read proves nothing: it ends the list, and with it the chain. */
export function certificatesOf(presented: readonly Uint8Array[]): X509Certificate[] {
  const read: X509Certificate[] = []
  for (const der of presented) {
    try {
      read.push(new X509Certificate(der))
    } catch {
      return read
    }
  }
  return read
}
