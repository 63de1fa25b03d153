/** Modules of the library. @types/node-forge declares only the whole, and lacks what is used of these. */
declare module 'node-forge/lib/asn1.js' {
  import type { asn1 } from 'node-forge'

  interface ReadOptions {
    strict: boolean
    parseAllBytes: boolean
    decodeBitStrings: boolean
    maxDepth: number
  }
  const api: Omit<typeof asn1, 'fromDer'> & { fromDer(bytes: string, options: ReadOptions): asn1.Asn1 }
  export default api
}

/** Addresses are bytes in a string of one character a byte. null: neither IPv4 nor IPv6. */
declare module 'node-forge/lib/util.js' {
  const api: { bytesFromIP(ip: string): string | null; bytesToIP(bytes: string): string | null }
  export default api
}
