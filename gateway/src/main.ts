import { ownProcess } from '@overlay/platform/part'
import { runProgram } from '@overlay/platform/process'
import { runGateway } from './run.js'

await runProgram('gateway', () => runGateway(process.env, ownProcess))
