import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { startBalancer } from '../src/processes/balancer.js'
import { type Address, freePort } from '../src/processes/ports.js'

test('forwards connections to its targets in turn, completely in both directions', async () => {
  const balancer = await balancerOf([await echo('a'), await echo('b')])
  expect([await ask(balancer, '1'), await ask(balancer, '2'), await ask(balancer, '3')]).toEqual([
    'a1',
    'b2',
    'a3',
  ])
  const long = 'x'.repeat(1_000_000)
  expect(await ask(balancer, long)).toHaveLength(long.length + 1)
})

test('skips a target that refuses', async () => {
  const balancer = await balancerOf([await echo('a'), await nowhere()])
  expect([await ask(balancer, '1'), await ask(balancer, '2'), await ask(balancer, '3')]).toEqual([
    'a1',
    'a2',
    'a3',
  ])
})

test('closes the connection when every target refuses', async () => {
  const balancer = await balancerOf([await nowhere(), await nowhere()])
  expect(await ask(balancer, '1')).toBe('')
})

test('sends its targets the address of the client', async () => {
  const address = await nowhere()
  const target = createServer()
  target.listen(address.port, address.host)
  onTestFinished(() => void target.close())
  const balancer = await balancerOf([address])
  const client = connect({ ...balancer, localAddress: '127.0.0.1' })
  client.end('hello')
  const [socket] = (await once(target, 'connection')) as [Socket]
  const { localPort } = client
  expect(await text(socket)).toBe(`PROXY TCP4 127.0.0.1 127.0.0.1 ${localPort} ${balancer.port}\r\nhello`)
  socket.end()
})

const nowhere = async (): Promise<Address> => ({ host: '127.0.0.1', port: await freePort() })

async function balancerOf(targets: readonly Address[]): Promise<Address> {
  const address = await nowhere()
  const balancer = await startBalancer(address, targets)
  onTestFinished(() => balancer[Symbol.asyncDispose]())
  return address
}

/** Returns its name and all that it has received. */
async function echo(name: string): Promise<Address> {
  const address = await nowhere()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.once('end', () => socket.end(name + received.replace(/^PROXY .*\r\n/, '')))
  })
  server.listen(address.port, address.host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return address
}

async function ask({ host, port }: Address, question: string): Promise<string> {
  const socket = connect(port, host)
  socket.end(question)
  return text(socket).catch(() => '')
}
