import { createHash } from 'node:crypto'
import { createReadStream, type Stats } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { getMimeType } from 'hono/utils/mime'
import { LRUCache } from 'lru-cache'
import type { PreparedBody } from '../http/send.js'
import { CONSOLE_CACHE_BYTES, CONSOLE_FILE_BYTES } from '../limits.js'

/** One version of a file. */
export interface StoredFile extends PreparedBody {
  /** The same on all replicas. Weak, because the compressed form has it too. */
  readonly etag: string
}

/** The files of a directory that is read only. They may be replaced while the process runs. */
export interface Folder {
  /**
   * @param path relative, with slashes; not encoded
   * @returns undefined if there is no such file, if it is outside the directory, or if a part of its name begins with a
   *   dot
   * @throws Error if the file cannot be read or is too large
   */
  find(path: string): Promise<StoredFile | undefined>
}

export interface FolderLimits {
  readonly fileBytes: number
  /** Files in memory. */
  readonly cacheBytes: number
}

const defaults: FolderLimits = { fileBytes: CONSOLE_FILE_BYTES, cacheBytes: CONSOLE_CACHE_BYTES }

export function openFolder(directory: string, { fileBytes, cacheBytes }: FolderLimits = defaults): Folder {
  // strangers read these files: each version is read and compressed once, not for each request
  const versions = new LRUCache<string, StoredFile, string>({
    maxSize: cacheBytes,
    sizeCalculation: ({ bytes, gzip }) => Math.ceil(bytes.length * (gzip === 'never' ? 1 : 1.5)) + 1,
    fetchMethod: (_version, _stale, { context: path }) => readStored(path, fileBytes),
  })
  return {
    async find(path) {
      if (!isPlain(path)) return undefined
      const [root, real] = await Promise.all([
        realpath(directory),
        ifPresent(realpath(join(directory, path))),
      ])
      if (real === undefined || !real.startsWith(root + sep)) return undefined
      const stats = await ifPresent(stat(real))
      if (!stats?.isFile()) return undefined
      return versions.fetch(versionOf(real, stats), { context: real })
    },
  }
}

/** No NUL, no backslash, and no empty or hidden part, so neither `.` nor `..`. */
const isPlain = (path: string): boolean => /^[^./\\\0][^/\\\0]*(\/[^./\\\0][^/\\\0]*)*$/.test(path)

const versionOf = (path: string, { size, mtimeMs, ino }: Stats): string =>
  `${path}\0${size} ${mtimeMs} ${ino}`

async function readStored(path: string, fileBytes: number): Promise<StoredFile> {
  // one byte more than allowed shows that the file is too large, also if it grows meanwhile
  const bytes = await buffer(createReadStream(path, { end: fileBytes }))
  if (bytes.length > fileBytes) throw new Error(`${path} has more than ${fileBytes} bytes`)
  const type = getMimeType(path) ?? 'application/octet-stream'
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  return {
    bytes,
    type,
    containsSecret: false,
    gzip: isCompressible(type) ? undefined : 'never',
    etag: `W/"${digest}"`,
  }
}

const isCompressible = (type: string): boolean =>
  /^text\/|[/+](json|xml|wasm|x-icon)\b|^font\/[ot]tf/.test(type)

const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'])

async function ifPresent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (err) {
    if (ABSENT.has((err as NodeJS.ErrnoException).code ?? '')) return undefined
    throw err
  }
}
