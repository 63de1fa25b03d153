/** One module of the library. @types/node-forge declares only the whole, and lacks the options. */
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
