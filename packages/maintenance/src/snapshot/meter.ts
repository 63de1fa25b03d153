import { createHash } from 'node:crypto'
import { Transform } from 'node:stream'

export interface Measured {
  readonly rows: number
  readonly bytes: number
  readonly sha256: string
}

const NEWLINE = 10

/** Passes on and measures the output of COPY, which has a line for each row. Fails beyond so many bytes. */
export function openMeter(maxBytes: number): { readonly stream: Transform; measured(): Measured } {
  const hash = createHash('sha256')
  let rows = 0
  let bytes = 0
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > maxBytes) return done(new Error(`more than ${maxBytes} bytes`))
      hash.update(chunk)
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) rows += 1
      done(null, chunk)
    },
  })
  return { stream, measured: () => ({ rows, bytes, sha256: hash.digest('hex') }) }
}
