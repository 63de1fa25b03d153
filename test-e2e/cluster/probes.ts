import { connect } from 'node:net'
import { Client, credentials } from '@grpc/grpc-js'
import type { ContainerSpec, Probe } from './manifests.js'
import { portOf } from './manifests.js'

const SERVING = 1

/** Whether one execution of a probe succeeds. */
export async function succeeds(probe: Probe, spec: ContainerSpec, address: string): Promise<boolean> {
  const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000
  if (probe.httpGet)
    return http(`http://${address}:${portOf(probe.httpGet.port, spec)}${probe.httpGet.path}`, timeoutMs)
  if (probe.grpc) return grpc(`${address}:${probe.grpc.port}`, probe.grpc.service ?? '', timeoutMs)
  if (probe.tcpSocket) return tcp(address, portOf(probe.tcpSocket.port, spec), timeoutMs)
  throw new Error(
    `container ${spec.name} has a probe of a kind that the cluster of the tests does not execute`,
  )
}

async function http(url: string, timeoutMs: number): Promise<boolean> {
  try {
    const { status } = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'manual' })
    return status >= 200 && status < 400
  } catch {
    return false
  }
}

const tcp = (host: string, port: number, timeoutMs: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: timeoutMs })
    const end = (isOpen: boolean): void => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.on('connect', () => end(true))
    socket.on('timeout', () => end(false))
    socket.on('error', () => end(false))
  })

/** grpc.health.v1. The request has the name in field 1, the answer the state. */
const grpc = (address: string, service: string, timeoutMs: number): Promise<boolean> =>
  new Promise((resolve) => {
    const client = new Client(address, credentials.createInsecure())
    const name = Buffer.from(service)
    const request = name.length === 0 ? name : Buffer.concat([Buffer.from([10, name.length]), name])
    client.makeUnaryRequest(
      '/grpc.health.v1.Health/Check',
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => bytes,
      request,
      { deadline: Date.now() + timeoutMs },
      (err, answer) => {
        client.close()
        resolve(!err && answer?.[0] === 8 && answer[1] === SERVING)
      },
    )
  })
