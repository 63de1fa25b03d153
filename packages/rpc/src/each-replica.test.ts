import { expect, onTestFinished, test } from 'vitest'
import { callerTls, context, freePort, startServer } from '../testing/test-service.js'
import { eachReplica } from './each-replica.js'
import { AuthorizeRequest, PolicyServiceService } from './gen/overlay/policy/v1/policy.js'
import { connectPeers } from './peers.js'

const { authorize } = PolicyServiceService
const request = AuthorizeRequest.fromPartial({ serviceId: 'yes' })

test('each client calls its own replica, and no other one while that is away', async () => {
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  const addresses = ports.map((port) => `127.0.0.1:${port}`)
  const [first, second] = addresses
  await startServer(first, 'first')
  await startServer(second, 'second')
  const peers = connectPeers(addresses.join(), { tls: callerTls, service: 'policy' })
  onTestFinished(() => peers[Symbol.asyncDispose]())
  const replicas = eachReplica({ authorize }, peers)
  expect(replicas.map(({ address }) => address)).toEqual(addresses)
  await replicas[0]?.methods.authorize(request, context()) // before, calls wait for the start of the service
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.allSettled(
      replicas.map(({ methods }) => methods.authorize(request, context())),
    )
    expect(
      answers.map((answer) =>
        answer.status === 'fulfilled' ? answer.value.serviceName : answer.reason.code,
      ),
    ).toEqual(['first', 'second', 'UNAVAILABLE'])
  }
})
