import { Fault } from '@overlay/rpc'
import { openLog } from './log.js'
import { guardProcess, runProgram, untilStopped } from './process.js'
import { WrongSettings } from './settings.js'

// A process as the services are. Its argument is what it does once it is ready.
await runProgram('test', async () => {
  if (process.argv[2] === 'settings') throw new WrongSettings('settings: LISTEN is not set')
  if (process.argv[2] === 'unavailable') throw new Fault('UNAVAILABLE')
  if (process.argv[2] === 'fail') throw new Error('no answer')
  const log = openLog('test', { level: 'info', format: 'json' })
  guardProcess(log)
  log.info('ready')
  if (process.argv[2] === 'fail later') throw new Error('no answer')

  if (process.argv[2] === 'throw') setImmediate(() => JSON.parse('{'))
  if (process.argv[2] === 'reject') void Promise.reject(new Error('not handled'))
  const alive = setInterval(() => undefined, 1000)
  if (process.argv[2] === 'start') await new Promise(() => undefined)
  await untilStopped()
  if (process.argv[2] === 'hang') await new Promise(() => undefined)
  if (process.argv[2] !== 'connect') clearInterval(alive) // else it is as a connection that never ends
  log.info('stopped')
})
