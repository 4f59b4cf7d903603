import { defineSignal, defineTask } from 'nestjs-asynq';

export interface Order {
  readonly orderId: string;
}

export interface Thumbnail {
  readonly orderId: string;
  /** Pixels of each side. */
  readonly size: number;
}

export const FulfilOrder = defineTask<Order, { captureId: string; approvedBy: string }>('order:fulfil', {
  key: ({ orderId }) => orderId, // by which a signal finds it
  once: '1d', // however often this program is started
});
export const MakeThumbnail = defineTask<Thumbnail, { brightness: number }>('thumbnail:make', { timeout: '1m' });

export const Approval = defineSignal<{ approved: boolean; by: string }>('approval');
