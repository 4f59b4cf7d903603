import { ConflictException, Injectable } from '@nestjs/common';
import { InjectTasks, type TasksOf } from 'nestjs-asynq';
import { AsynqOutbox } from 'nestjs-asynq/outbox';
import { SignupDatabase } from './database.js';
import { MailHandlers } from './mail.handlers.js';
import type { SignupDto } from './signup.dto.js';

@Injectable()
export class Signups {
  constructor(
    private readonly db: SignupDatabase,
    private readonly outbox: AsynqOutbox,
    @InjectTasks(MailHandlers) private readonly mails: TasksOf<MailHandlers>,
  ) {}

  /**
   * The sign-up and the task of its mail are stored together, or neither is: here the conflict comes after the task, and takes it back.
   * This process has no MailHandlers, and calls one of its methods all the same.
   */
  add({ email, name }: SignupDto, tenant: string): Promise<string> {
    return this.db.transaction().execute((tx) =>
      this.outbox.within(tx, async () => {
        const { id } = await this.mails.with({ headers: { tenant } }).welcome({ email, name });
        const { numInsertedOrUpdatedRows } = await tx
          .insertInto('signups')
          .values({ email, name, task_id: id })
          .onConflict((conflict) => conflict.column('email').doNothing())
          .executeTakeFirstOrThrow();
        if (!numInsertedOrUpdatedRows) throw new ConflictException(`${email} has signed up already`);
        return id;
      }),
    );
  }

  async has(taskId: string): Promise<boolean> {
    const found = await this.db.selectFrom('signups').select('email').where('task_id', '=', taskId).execute();
    return found.length > 0;
  }
}
