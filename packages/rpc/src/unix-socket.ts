import { lstat, rm } from 'node:fs/promises'
import { connect } from 'node:net'

/** The path in an address `unix:/path`. */
export const socketPathOf = (address: string): string | undefined => /^unix:(.*)$/.exec(address)?.[1]

/** For `listen` and `connect`: of `host:port` or `unix:/path`. */
export function addressOf(address: string): { path: string } | { host: string; port: number } {
  const path = socketPathOf(address)
  if (path !== undefined) return { path }
  const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? []
  if (host === undefined) throw new Error(`${address} is not host:port`)
  return { host, port: Number(port) }
}

/** Removes the socket that a killed process has left. Throws where a process listens on it. */
export async function removeStaleSocket(path: string): Promise<void> {
  const stats = await lstat(path).catch((err: NodeJS.ErrnoException) => {
    if (err.code !== 'ENOENT') throw err
  })
  if (!stats) return
  if (!stats.isSocket()) throw new Error(`${path} is not a socket`)
  if (await isListening(path)) throw new Error(`${path} is in use`)
  await rm(path, { force: true })
}

const isListening = (path: string): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const socket = connect(path, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', (err: NodeJS.ErrnoException) =>
      err.code === 'ECONNREFUSED' || err.code === 'ENOENT' ? resolve(false) : reject(err),
    )
  })
