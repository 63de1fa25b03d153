import { runProgram } from '@overlay/process'
import { ownProcess } from '@overlay/process/component'
import { runGateway } from './run.js'

await runProgram('gateway', () => runGateway(process.env, ownProcess))
