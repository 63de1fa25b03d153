import { type FileHandle, open, rename } from 'node:fs/promises'
import { Writable } from 'node:stream'
import { LOG_LINE_BYTES } from '../limits.js'
import { ignoreMissing } from './files.js'

/** The size at which a log file is rotated, and the number of files that are kept. */
export interface LogLimits {
  readonly maxBytes: number
  readonly files: number
}

export interface LogFile {
  /** A stream into the file. Lines of several streams do not mix. */
  input(): Writable
  /** To be called after all streams have ended. */
  close(): Promise<void>
}

const newline = 10

/**
 * Appends lines to a file. Before the file exceeds its limit it is renamed to `<path>.1`, older files to `.2` and so on.
 * Lines that cannot be written are dropped, and `print` is called once until the next line is written.
 */
export function openLogFile(
  path: string,
  { maxBytes, files }: LogLimits,
  print: (line: string) => void = () => undefined,
): LogFile {
  let file: FileHandle | undefined
  let size = 0
  let failing = false
  let last: Promise<void> = Promise.resolve()

  async function append(lines: Buffer): Promise<void> {
    file ??= await openFile()
    if (size > 0 && size + lines.length > maxBytes) {
      await rotate(file)
      file = await openFile()
    }
    await file.appendFile(lines)
    size += lines.length
  }

  async function openFile(): Promise<FileHandle> {
    const opened = await open(path, 'a', 0o600)
    size = (await opened.stat()).size
    return opened
  }

  async function rotate(full: FileHandle): Promise<void> {
    file = undefined
    await full.close()
    for (let n = files - 1; n > 0; n--)
      await rename(n === 1 ? path : `${path}.${n - 1}`, `${path}.${n}`).catch(ignoreMissing)
  }

  const write = (lines: Buffer): Promise<void> => {
    last = last
      .then(() => append(lines))
      .then(
        () => {
          failing = false
        },
        (err: Error) => {
          if (!failing) print(`cannot write to ${path}, lines are lost: ${err.message}`)
          failing = true
        },
      )
    return last
  }

  return {
    input() {
      let rest: Buffer = Buffer.alloc(0)
      return new Writable({
        write(chunk: Buffer, _encoding, done) {
          const all = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
          const end = all.lastIndexOf(newline) + 1 || (all.length > LOG_LINE_BYTES ? all.length : 0)
          rest = all.subarray(end)
          if (end === 0) done()
          else void write(all.subarray(0, end)).then(() => done())
        },
        final(done) {
          if (rest.length === 0) done()
          else void write(Buffer.concat([rest, Buffer.from('\n')])).then(() => done())
        },
      })
    },
    async close() {
      await last
      await file?.close()
      file = undefined
    },
  }
}
