import { ownProcess } from '@overlay/platform/part'
import { endProcess } from '@overlay/platform/process'
import { runGateway } from './run.js'

await runGateway(process.env, ownProcess)
endProcess()
