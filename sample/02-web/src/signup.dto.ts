import { IsEmail, IsString, Length } from 'class-validator';

/** The same class validates the HTTP body in the web process and the payload in the worker. */
export class SignupDto {
  @IsEmail()
  email!: string;

  @IsString()
  @Length(1, 80)
  name!: string;
}
