import { access, constants } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'
import { type Running, startTied } from './tied-process.js'

/** Path of the real server, when there is one on PATH. */
export async function findNatsServer(): Promise<string | undefined> {
  for (const directory of (process.env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const path = resolve(directory, 'nats-server')
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (found) return path
  }
  return undefined
}

/** Starts the real server on the loopback interface; it ends with this process, however that ends. */
export async function startNatsServer(path: string, port: number): Promise<Running & { url: string }> {
  const args = ['--addr', '127.0.0.1', '--port', String(port)]
  const server = await startTied({ path, args, readyWords: 'Server is ready' })
  return { ...server, url: `nats://127.0.0.1:${port}` }
}
