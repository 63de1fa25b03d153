import { createHash } from 'node:crypto'
import { Transform } from 'node:stream'

export interface Measured {
  readonly bytes: number
  readonly sha256: string
}

/** Passes on and measures a stream. Fails beyond so many bytes. */
export function openMeter(maxBytes: number): { readonly stream: Transform; measured(): Measured } {
  const hash = createHash('sha256')
  let bytes = 0
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > maxBytes) return done(new Error(`more than ${maxBytes} bytes`))
      hash.update(chunk)
      done(null, chunk)
    },
  })
  return { stream, measured: () => ({ bytes, sha256: hash.digest('hex') }) }
}
